-- Accesses to pages of memory per dispatch, one row per row of rocpd_memory_page.
CREATE VIEW "memory_pages" AS
SELECT
    A.id AS "id",                       -- row id, unique in its rank
    A.guid AS "guid",                   -- GUID of the rank
    A.kernel AS "kernel",               -- kernel, without marks of the linker and of the instrumentation
    A.dispatch_id AS "dispatch_id",     -- number of the dispatch, as Omniprobe counts
    A.ordinal AS "ordinal",             -- which dispatch of this kernel it is, from 1
    A.start_address AS "start_address", -- first address
    A.end_address AS "end_address",     -- last address
    A.accesses AS "accesses"            -- accesses
FROM
    "rocpd_memory_page{{uuid}}" A;
