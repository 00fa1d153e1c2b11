; Replaces the time that each point takes by the time at which it comes: after the latest of its sources, else after 0.
; Returns whether the column of times can hold them; if not, its content is spoilt.
; Points come in order. The edges of point p are those from first[p] to first[p + 1]; each has its source, and the lag
; after it. Numbers in columns have as few bits as they need: the words in braces are replaced by the types.
define i1 @times(i64 %count, ptr %order, ptr %first, ptr %source, ptr %lag, ptr %times) {
entry:
  %is.empty = icmp eq i64 %count, 0
  br i1 %is.empty, label %done, label %point

point:
  %n = phi i64 [ 0, %entry ], [ %n.next, %comes ]
  %n.next = add i64 %n, 1
  %p.at = getelementptr {order}, ptr %order, i64 %n
  %p.read = load {order}, ptr %p.at
  %p = {widen order} {order} %p.read to i64
  %begin.at = getelementptr {first}, ptr %first, i64 %p
  %begin.read = load {first}, ptr %begin.at
  %begin = {widen first} {first} %begin.read to i64
  %p.next = add i64 %p, 1
  %end.at = getelementptr {first}, ptr %first, i64 %p.next
  %end.read = load {first}, ptr %end.at
  %end = {widen first} {first} %end.read to i64
  %waits = icmp slt i64 %begin, %end
  br i1 %waits, label %edge, label %comes

edge:
  %e = phi i64 [ %begin, %point ], [ %e.next, %edge ]
  %latest = phi i64 [ -9223372036854775808, %point ], [ %later, %edge ]
  %source.at = getelementptr {source}, ptr %source, i64 %e
  %from.read = load {source}, ptr %source.at
  %from = {widen source} {source} %from.read to i64
  %from.at = getelementptr {times}, ptr %times, i64 %from
  %came.read = load {times}, ptr %from.at
  %came = {widen times} {times} %came.read to i64
  %lag.at = getelementptr {lag}, ptr %lag, i64 %e
  %lasts.read = load {lag}, ptr %lag.at
  %lasts = {widen lag} {lag} %lasts.read to i64
  %after = add i64 %came, %lasts
  %is.later = icmp sgt i64 %after, %latest
  %later = select i1 %is.later, i64 %after, i64 %latest
  %e.next = add i64 %e, 1
  %goes.on = icmp slt i64 %e.next, %end
  br i1 %goes.on, label %edge, label %comes

comes:
  %since = phi i64 [ 0, %point ], [ %later, %edge ]
  %time.at = getelementptr {times}, ptr %times, i64 %p
  %takes.read = load {times}, ptr %time.at
  %takes = {widen times} {times} %takes.read to i64
  %time = add i64 %since, %takes
  %held = {narrow times} i64 %time to {times}
  store {times} %held, ptr %time.at
  %again = {widen times} {times} %held to i64
  %is.held = icmp eq i64 %again, %time
  %goes.past = icmp slt i64 %n.next, %count
  %further = and i1 %is.held, %goes.past
  br i1 %further, label %point, label %ends

ends:
  ret i1 %is.held

done:
  ret i1 true
}
