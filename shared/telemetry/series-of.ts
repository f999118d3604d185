/** The series of one metric in a `/metrics` text, each without the metric's name; for tests. */
export function seriesOf(text: string, name: string): string[] {
  return text.split('\n').flatMap((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `) ? [line.slice(name.length).trim()] : []));
}
