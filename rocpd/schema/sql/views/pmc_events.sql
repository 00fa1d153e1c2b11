-- Counter values, one row per row of rocpd_pmc_event; dispatch columns are NULL for values that belong to samples.
CREATE VIEW "pmc_events" AS
SELECT
    V.id AS "id",                   -- value id, unique in its rank
    V.guid AS "guid",               -- GUID of the rank
    V.pmc_id AS "pmc_id",           -- counter id
    V.event_id AS "event_id",       -- event it was measured for
    C.string AS "category",         -- domain of the event, such as KERNEL_DISPATCH
    S.display_name AS "name",       -- kernel name
    K.nid AS "nid",                 -- node id
    P.pid AS "pid",                 -- OS process id
    K.dispatch_id AS "dispatch_id", -- sequence number of the dispatch
    K.start AS "start",             -- start [ns]
    K.end AS "end",                 -- end [ns]
    K.end - K.start AS "duration",  -- end - start [ns] {integer}
    I.name AS "counter_name",       -- counter name
    V.value AS "counter_value"      -- value, in the unit of the counter
FROM
    "rocpd_pmc_event{{uuid}}" V
    LEFT JOIN "rocpd_info_pmc{{uuid}}" I ON I.id = V.pmc_id
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = V.event_id
    LEFT JOIN "rocpd_string{{uuid}}" C ON C.id = E.category_id
    LEFT JOIN "rocpd_kernel_dispatch{{uuid}}" K ON K.event_id = V.event_id
    LEFT JOIN "rocpd_info_kernel_symbol{{uuid}}" S ON S.id = K.kernel_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = K.pid;
