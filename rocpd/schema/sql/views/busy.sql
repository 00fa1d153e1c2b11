-- How busy each agent was with kernels and copies; a copy counts for the GPU that it reaches, else
-- for the GPU that it leaves, else for where it goes. One row per rank and agent.
-- WallTime is that of the rank's own events: clocks of different ranks need not agree.
-- Events with invalid timestamps (start 0, or end before start) count as calls, not as time.
CREATE VIEW "busy" AS
SELECT
    G.agent_id AS "agent_id",                                   -- agent id {integer}
    A.type AS "type",                                           -- CPU, GPU or NIC
    G.gpu_time AS "GpuTime",                                    -- sum of kernel and copy durations [ns] {integer}
    W.wall_time AS "WallTime",                                  -- last end - first start in the rank [ns] {integer}
    G.gpu_time * 1.0 / W.wall_time AS "Busy",                   -- GpuTime / WallTime {real}
    A.type_index AS "type_index",                               -- index among the visible agents of its type
    A.product AS "product",                                     -- marketing name of the agent
    P.rank AS "rank",                                           -- rank number {integer}
    P.hostname AS "hostname"                                    -- host of the rank {text}
FROM
    (
        SELECT guid, agent_id, SUM("end" - start) AS gpu_time
        FROM (
            SELECT guid, agent_id, start, "end" FROM "rocpd_kernel_dispatch"
            WHERE {{valid_times}}
            UNION ALL
            SELECT
                M.guid,
                {{copy_agent}},
                M.start,
                M."end"
            FROM
                "rocpd_memory_copy" M
                LEFT JOIN "rocpd_info_agent" D ON D.guid = M.guid
                AND D.id = M.dst_agent_id
                LEFT JOIN "rocpd_info_agent" S ON S.guid = M.guid
                AND S.id = M.src_agent_id
            WHERE {{valid_times_of_M}}
        )
        GROUP BY guid, agent_id
    ) G
    JOIN (
        SELECT guid, MAX("end") - MIN(start) AS wall_time
        FROM (
            SELECT guid, start, "end" FROM "rocpd_kernel_dispatch"
            WHERE {{valid_times}}
            UNION ALL
            SELECT guid, start, "end" FROM "rocpd_memory_copy"
            WHERE {{valid_times}}
        )
        GROUP BY guid
    ) W ON W.guid = G.guid
    LEFT JOIN "agents" A ON A.guid = G.guid
    AND A.id = G.agent_id
    LEFT JOIN (
        SELECT guid, rank, MIN(hostname) AS hostname
        FROM "processes"
        GROUP BY guid, rank
    ) P ON P.guid = G.guid
ORDER BY
    P.rank,
    G.guid,
    G.agent_id;
