; Fills %times: each point comes its work after the latest of its sources, without one its work after 0.
; The edges of point p are those from first[p] to first[p + 1]; each says its source, and how much later it counts.
define void @times(i64 %count, ptr %first, ptr %source, ptr %lag, ptr %work, ptr %times) {
entry:
  %is.empty = icmp eq i64 %count, 0
  br i1 %is.empty, label %done, label %point

point:
  %p = phi i64 [ 0, %entry ], [ %next, %comes ]
  %begin = phi i64 [ 0, %entry ], [ %end, %comes ]
  %next = add i64 %p, 1
  %end.at = getelementptr i64, ptr %first, i64 %next
  %end = load i64, ptr %end.at
  %waits = icmp slt i64 %begin, %end
  br i1 %waits, label %edge, label %comes

edge:
  %e = phi i64 [ %begin, %point ], [ %e.next, %edge ]
  %latest = phi i64 [ -9223372036854775808, %point ], [ %later, %edge ]
  %source.at = getelementptr i64, ptr %source, i64 %e
  %from = load i64, ptr %source.at
  %from.at = getelementptr i64, ptr %times, i64 %from
  %came = load i64, ptr %from.at
  %lag.at = getelementptr i64, ptr %lag, i64 %e
  %lasts = load i64, ptr %lag.at
  %after = add i64 %came, %lasts
  %is.later = icmp sgt i64 %after, %latest
  %later = select i1 %is.later, i64 %after, i64 %latest
  %e.next = add i64 %e, 1
  %goes.on = icmp slt i64 %e.next, %end
  br i1 %goes.on, label %edge, label %comes

comes:
  %since = phi i64 [ 0, %point ], [ %later, %edge ]
  %work.at = getelementptr i64, ptr %work, i64 %p
  %takes = load i64, ptr %work.at
  %time = add i64 %since, %takes
  %time.at = getelementptr i64, ptr %times, i64 %p
  store i64 %time, ptr %time.at
  %is.last = icmp eq i64 %next, %count
  br i1 %is.last, label %done, label %point

done:
  ret void
}
