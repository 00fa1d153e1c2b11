-- RPD's name: operations of GPUs.
CREATE VIEW "op" AS
SELECT
    V.id AS "id",                          -- operation, unique in its rank
    V.gpuId AS "gpuId",                    -- GPU: index of the hardware node; of an RPD trace its number
    V.queueId AS "queueId",                -- HSA queue id; of an RPD trace its number
    V.sequenceId AS "sequenceId",          -- as an RPD trace has it, else 0
    V.start AS "start",                    -- start [ns]
    V."end" AS "end",                      -- end [ns]
    V.description AS "description",        -- kernel name, empty for copies
    V.opType AS "opType",                  -- KernelExecution, CopyHostToDevice …
    V.guid AS "guid"                       -- GUID of the rank
    {{rank_host_of_V}}
FROM
    "rocpd_op" V;
