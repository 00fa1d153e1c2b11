-- The agents under the name that AMD's documents give them: rows and columns of rocpd_info_agent.
CREATE VIEW "rocpd_info_agents" AS
SELECT
    A.id AS "id",                         -- agent id (rocprofv3: absolute_index)
    A.guid AS "guid",                     -- GUID of the process that wrote the row
    A.nid AS "nid",                       -- node the process ran on
    A.pid AS "pid",                       -- process, by its id in rocpd_info_process (rocprofv3: the OS pid)
    A.type AS "type",                     -- kind of agent; NIC since 3.0.1
    A.absolute_index AS "absolute_index", -- index of the hardware node
    A.logical_index AS "logical_index",   -- index among the agents visible to the process
    A.type_index AS "type_index",         -- index among the visible agents of its type
    A.uuid AS "uuid",                     -- hardware id
    A.name AS "name",                     -- architecture, such as gfx942
    A.model_name AS "model_name",         -- model as the driver names it
    A.vendor_name AS "vendor_name",       -- vendor
    A.product_name AS "product_name",     -- marketing name, such as AMD Instinct MI300X
    A.user_name AS "user_name",           -- readable name
    A.extdata AS "extdata"                -- full hardware description: cu_count, wave_front_size, num_xcc, mem_banks …
FROM
    "rocpd_info_agent{{uuid}}" A;
