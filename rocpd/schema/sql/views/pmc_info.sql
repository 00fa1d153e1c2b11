-- Counters that could be collected, one row per row of rocpd_info_pmc.
CREATE VIEW "pmc_info" AS
SELECT
    I.id AS "id",                          -- counter id, unique in its rank
    I.guid AS "guid",                      -- GUID of the rank
    I.nid AS "nid",                        -- node id
    P.pid AS "pid",                        -- OS process id
    A.absolute_index AS "agent_abs_index", -- agent: index of the hardware node
    I.is_constant AS "is_constant",        -- 1: a constant of the device
    I.is_derived AS "is_derived",          -- 1: computed from other counters
    I.name AS "name",                      -- counter name
    I.description AS "description",        -- the counted events
    I.block AS "block",                    -- hardware block
    I.expression AS "expression"           -- formula of a derived counter
FROM
    "rocpd_info_pmc{{uuid}}" I
    LEFT JOIN "rocpd_info_agent{{uuid}}" A ON A.id = I.agent_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = I.pid;
