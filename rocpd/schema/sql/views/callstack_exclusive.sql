-- RPD's name (callStack_exclusive): time of each call, without the calls inside it.
CREATE VIEW "callstack_exclusive" AS
SELECT
    V.id AS "parent_id",                   -- call, in rocpd_api
    V.cpu_self AS "cpu_time",             -- time on its thread [ns]
    V.gpu_self AS "gpu_time",             -- operations launched by it itself [ns]
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "call_times" V;
