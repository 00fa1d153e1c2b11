-- Regions on CPU threads (API calls, marker ranges), one row per row of rocpd_region.
CREATE VIEW "regions" AS
SELECT
    R.id AS "id",                           -- region id, unique in its rank
    R.guid AS "guid",                       -- GUID of the rank
    C.string AS "category",                 -- domain of the event, such as KERNEL_DISPATCH
    S.string AS "name",                     -- function name
    R.nid AS "nid",                         -- node id
    P.pid AS "pid",                         -- OS process id
    T.tid AS "tid",                         -- OS thread id
    R.start AS "start",                     -- start [ns]
    R.end AS "end",                         -- end [ns]
    R.end - R.start AS "duration",          -- end - start [ns] {integer}
    R.event_id AS "event_id",               -- event row id
    E.stack_id AS "stack_id",               -- internal correlation id, equal for a launch and its operations
    E.parent_stack_id AS "parent_stack_id", -- stack_id of the enclosing call
    E.correlation_id AS "corr_id",          -- external correlation id
    E.extdata AS "extdata",                 -- JSON of the event
    E.call_stack AS "call_stack",           -- JSON call stack
    E.line_info AS "line_info"              -- JSON source line
FROM
    "rocpd_region{{uuid}}" R
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = R.event_id
    LEFT JOIN "rocpd_string{{uuid}}" C ON C.id = E.category_id
    LEFT JOIN "rocpd_string{{uuid}}" S ON S.id = R.name_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = R.pid
    LEFT JOIN "rocpd_info_thread{{uuid}}" T ON T.id = R.tid;
