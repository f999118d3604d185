let last = 0;

/** Names a stream for the upstream: never the same twice in a run. */
export function nextId() {
  last += 1;
  return last;
}
