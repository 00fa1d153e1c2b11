-- RPD's name (callStack_inclusive): time of each call, with the calls inside it.
CREATE VIEW "callstack_inclusive" AS
SELECT
    V.id AS "parent_id",                   -- call, in rocpd_api
    V.cpu_time AS "cpu_time",             -- time on its thread [ns]
    V.gpu_time AS "gpu_time",             -- operations launched by it or inside it [ns]
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "call_times" V;
