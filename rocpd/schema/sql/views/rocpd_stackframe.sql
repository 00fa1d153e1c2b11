-- RPD's name: stack frames of calls, the innermost one at depth 0.
CREATE VIEW "rocpd_stackframe" AS
SELECT
    ROW_NUMBER() OVER (PARTITION BY V.guid ORDER BY V.id, F.key) AS "id", -- number of the frame in its rank {integer}
    V.id AS "api_ptr_id",                  -- the call, in rocpd_api
    F.key AS "depth",                      -- how far out, from 0 {integer}
    S.id AS "name_id",                     -- the frame, in rocpd_string
    F.value AS "frame",                    -- the frame {text}
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "regions" V
    JOIN json_each(CASE WHEN json_valid(V.call_stack) AND json_type(V.call_stack) = 'array' THEN V.call_stack ELSE '[]' END) F
    LEFT JOIN "rocpd_string" S ON S.guid = V.guid
    AND S.string = F.value;
