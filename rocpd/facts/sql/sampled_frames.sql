-- Samples of call stacks of one rank whose frames are regions, the outermost first, as rocprofiler-systems writes them:
-- end and length of the time that a sample stands for [ns], thread, an event, JSON of the stack. `inlined` of a frame is
-- the innermost line at its place: of the function itself, or of a function that the compiler inlined into it.
SELECT "end" AS at, thread, MIN(event) AS event,
       CASE WHEN start BETWEEN 1 AND "end" THEN "end" - start END AS length,
       '[' || group_concat(
           CASE
               WHEN inlined IS NULL THEN json_object('function', function)
               WHEN inlined = function OR substr(function, 1, length(inlined) + 1) = inlined || '('
                   THEN json_object('function', function, 'file', file, 'line', line)
               ELSE json_object('function', inlined, 'file', file, 'line', line) || ','
                    || json_object('function', function)
           END, ',' ORDER BY id DESC
       ) || ']' AS call_stack
FROM (
    SELECT id, start, "end", thread, event, category, function,
           CAST(json_extract(document, '$.inlined.name') AS TEXT) AS inlined,
           NULLIF(CAST(json_extract(document, '$.inlined.location') AS TEXT), '') AS file,
           CAST(json_extract(document, '$.inlined.line') AS INTEGER) AS line
    FROM (
        SELECT R.id AS id, R.start, R."end", R.tid AS thread, R.event_id AS event, E.category_id AS category,
               COALESCE(CAST(N.string AS TEXT), '?') AS function,
               CASE WHEN json_valid(E.line_info) THEN E.line_info END AS document
        FROM rocpd_region R
        JOIN rocpd_event E ON E.id = R.event_id
        LEFT JOIN rocpd_string N ON N.id = R.name_id
        WHERE EXISTS ({{sampled_categories}}) AND E.category_id IN ({{sampled_categories}})
    )
)
GROUP BY thread, category, start, "end"
