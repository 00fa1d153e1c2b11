-- Launches of executable HIP graphs, one row per row of rocpd_graph_launch (schema 3.0.2).
CREATE VIEW "graph_launches" AS
SELECT
    L.id AS "id",                                       -- launch id, unique in its rank
    L.guid AS "guid",                                   -- GUID of the rank
    L.nid AS "nid",                                     -- node id
    P.pid AS "pid",                                     -- OS process id
    T.tid AS "tid",                                     -- OS thread id
    A.absolute_index AS "agent_abs_index",              -- agent: index of the hardware node
    L.queue_id AS "queue_id",                           -- HSA queue id
    L.start AS "start",                                 -- start [ns]
    L.end AS "end",                                     -- end [ns]
    L.end - L.start AS "duration",                      -- end - start [ns] {integer}
    L.graph_exec_id AS "graph_exec_id",                 -- executable graph
    L.kernel_dispatch_count AS "kernel_dispatch_count", -- kernels in the graph
    E.stack_id AS "stack_id",                           -- internal correlation id
    E.correlation_id AS "corr_id"                       -- external correlation id
FROM
    "rocpd_graph_launch{{uuid}}" L
    LEFT JOIN "rocpd_info_agent{{uuid}}" A ON A.id = L.agent_id
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = L.event_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = L.pid
    LEFT JOIN "rocpd_info_thread{{uuid}}" T ON T.id = L.tid;
