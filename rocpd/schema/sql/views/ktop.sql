-- RPD's name: kernels by the time of the calls that launched them. For their own time see top_kernels.
CREATE VIEW "ktop" AS
SELECT
    kernelName AS "Name",                                           -- kernel name {text}
    COUNT(*) AS "TotalCalls",                                       -- launches {integer}
    SUM(cpu_time) / 1000 AS "TotalDuration",                        -- time of the calls [us] {integer}
    SUM(cpu_time) / COUNT(*) / 1000 AS "Ave",                       -- mean time of a call [us] {integer}
    SUM(cpu_time) * 100.0 / SUM(SUM(cpu_time)) OVER () AS "Percentage" -- share of the time of all such calls [%] {real}
FROM
    "rocpd_kernelapi"
GROUP BY
    kernelName
ORDER BY
    +SUM(cpu_time) DESC, -- without + SQLite 3.53 takes this for the order of a statement over the view
    kernelName;
