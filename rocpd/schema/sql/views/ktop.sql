-- RPD's name: kernels by the time of the calls that launched them. For their own time see top_kernels.
CREATE VIEW "ktop" AS
SELECT
    K.kernelName AS "Name",                                         -- kernel name
    COUNT(*) AS "TotalCalls",                                       -- launches {integer}
    SUM(A."end" - A.start) / 1000 AS "TotalDuration",               -- time of the calls [us] {integer}
    SUM(A."end" - A.start) / COUNT(*) / 1000 AS "Ave",              -- mean time of a call [us] {integer}
    SUM(A."end" - A.start) * 100.0 / SUM(SUM(A."end" - A.start)) OVER () AS "Percentage" -- share of the time of all such calls [%] {real}
FROM
    "rocpd_kernelapi" K
    JOIN "rocpd_api" A ON A.guid = K.guid
    AND A.id = K.api_ptr_id
GROUP BY
    K.kernelName
ORDER BY
    +SUM(A."end" - A.start) DESC, -- without + SQLite 3.53 takes this for the order of a statement over the view
    K.kernelName;
