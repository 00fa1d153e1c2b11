-- RPD's name (autogradKernel): kernels by the operator of PyTorch that launched them and the sizes of its inputs.
CREATE VIEW "autogradkernel" AS
SELECT
    autogradName AS "autogradName",               -- operator {text}
    kernelName AS "kernelName",                   -- kernel name {text}
    sizes AS "sizes",                             -- sizes of its inputs, empty where not recorded {text}
    COUNT(*) AS "calls",                          -- launches {integer}
    AVG(gpu_time) AS "avg_gpu",                   -- mean time of the kernel [ns] {real}
    SUM(gpu_time) AS "total_gpu"                  -- time of the kernels [ns] {integer}
FROM
    "autograd_launches"
GROUP BY
    autogradName,
    kernelName,
    sizes
ORDER BY
    autogradName,
    kernelName,
    sizes;
