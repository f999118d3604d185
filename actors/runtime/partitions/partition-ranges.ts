/** For logs: `0-21,40,63`. @param partitions each once, in any order */
export function partitionRanges(partitions: Iterable<number>): string {
  const ranges: { first: number; last: number }[] = [];
  for (const partition of [...partitions].sort((left, right) => left - right)) {
    const range = ranges.at(-1);
    if (range !== undefined && partition === range.last + 1) range.last = partition;
    else ranges.push({ first: partition, last: partition });
  }
  return ranges.map(({ first, last }) => (first === last ? String(first) : `${first}-${last}`)).join(',');
}
