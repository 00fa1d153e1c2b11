-- RPD's name: calls and markers, one row per region that is one. Arguments of calls are in `api`, as text.
CREATE VIEW "rocpd_api" AS
SELECT
    R.id AS "id",                  -- region id, unique in its rank; of an RPD trace the id of the call
    P.pid AS "pid",                -- OS process id
    T.tid AS "tid",                -- OS thread id
    R.start AS "start",            -- start [ns]
    R.end AS "end",                -- end [ns]
    R.name_id AS "apiName_id",     -- function, in rocpd_string; roctx's for markers
    CASE WHEN C.string GLOB 'MARKER_*' OR C.string GLOB 'rocm_marker*' OR C.string = 'TORCH_OPERATOR' THEN 'UserMarker' ELSE S.string END AS "apiName", -- function, UserMarker for markers and operators of PyTorch {text}
    CASE WHEN C.string GLOB 'MARKER_*' OR C.string GLOB 'rocm_marker*' THEN COALESCE(CASE WHEN json_valid(E.extdata) THEN json_extract(E.extdata, '$.message') END, S.string) WHEN C.string = 'TORCH_OPERATOR' THEN S.string ELSE CASE WHEN json_valid(E.extdata) THEN json_extract(E.extdata, '$.args') END END AS "text", -- text of a marker, name of an operator, or other text given to a call, which is no list of arguments {text}
    C.string AS "category",        -- domain of the event
    R.event_id AS "event_id",      -- event row id
    E.stack_id AS "stack_id",      -- internal correlation id, equal for a call and its operations
    R.guid AS "guid"               -- GUID of the rank
FROM
    "rocpd_region{{uuid}}" R
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = R.event_id
    LEFT JOIN "rocpd_string{{uuid}}" C ON C.id = E.category_id
    LEFT JOIN "rocpd_string{{uuid}}" S ON S.id = R.name_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = R.pid
    LEFT JOIN "rocpd_info_thread{{uuid}}" T ON T.id = R.tid
WHERE
    C.string IS NULL
    OR C.string NOT IN ('GPU_WAIT', 'GPU_ANNOTATION', 'rocm_kernel_dispatch', 'rocm_memory_copy', 'rocm_memory_allocate');
