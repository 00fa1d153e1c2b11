-- Agents with the properties of their hardware, one row per row of rocpd_info_agent; NULL where a file does not say.
-- Memory is that of the agent's own banks: VRAM of a GPU, the memory at a CPU. GDS, LDS and scratch do not count.
CREATE VIEW "agents" AS
SELECT
    A.id AS "id",                         -- agent id, unique in its rank
    A.guid AS "guid",                     -- GUID of the rank
    A.nid AS "nid",                       -- node id
    P.pid AS "pid",                       -- OS process id
    A.type AS "type",                     -- CPU, GPU or NIC
    A.type_index AS "type_index",         -- index among the visible agents of its type
    A.absolute_index AS "absolute_index", -- index of the hardware node
    A.logical_index AS "logical_index",   -- index among the visible agents
    A.name AS "name",                     -- architecture of a GPU, such as gfx942; model of a CPU
    A.product_name AS "product",          -- marketing name, such as AMD Instinct MI300X
    A.vendor_name AS "vendor",            -- vendor
    CASE WHEN json_valid(A.extdata) THEN json_extract(A.extdata, '$.cu_count') END AS "cu_count", -- compute units of a GPU, cores of a CPU {integer}
    CASE WHEN json_valid(A.extdata) THEN json_extract(A.extdata, '$.num_xcc') END AS "xcc_count", -- accelerator complex dies {integer}
    CASE WHEN json_valid(A.extdata) THEN json_extract(A.extdata, '$.simd_count') END AS "simd_count", -- SIMD units, 0 for a CPU {integer}
    CASE WHEN json_valid(A.extdata) THEN json_extract(A.extdata, '$.wave_front_size') END AS "wave_size", -- work-items per wave, 0 for a CPU {integer}
    CASE WHEN json_valid(A.extdata) THEN json_extract(A.extdata, '$.max_waves_per_cu') END AS "max_waves_per_cu", -- waves that a compute unit holds {integer}
    CASE WHEN json_valid(A.extdata) THEN json_extract(A.extdata, '$.lds_size_in_kb') * 1024 END AS "lds_size", -- LDS per compute unit [bytes] {integer}
    CASE WHEN json_valid(A.extdata) THEN json_extract(A.extdata, CASE A.type WHEN 'CPU' THEN '$.max_engine_clk_ccompute' ELSE '$.max_engine_clk_fcompute' END) END AS "max_clock", -- highest clock of the compute units or cores [MHz] {integer}
    (SELECT MAX(json_extract(A.extdata, B.fullkey || '.mem_clk_max')) FROM json_each(CASE WHEN json_valid(A.extdata) THEN A.extdata END, '$.mem_banks') B) AS "max_memory_clock", -- highest clock of the memory [MHz] {integer}
    (SELECT SUM(json_extract(A.extdata, B.fullkey || '.size_in_bytes')) FROM json_each(CASE WHEN json_valid(A.extdata) THEN A.extdata END, '$.mem_banks') B WHERE COALESCE(json_extract(A.extdata, B.fullkey || '.heap_type'), 0) < 3) AS "memory_size" -- local memory [bytes] {integer}
FROM
    "rocpd_info_agent{{uuid}}" A
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = A.pid;
