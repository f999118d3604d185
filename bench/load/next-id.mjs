let last = 0;

/** An id of a stream for the upstream, unique in a run. */
export function nextId() {
  last += 1;
  return last;
}
