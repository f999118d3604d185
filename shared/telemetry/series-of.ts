/** The series of one metric in a `/metrics` text, without its name; for tests. */
export function seriesOf(text: string, name: string): string[] {
  return text.split('\n').flatMap((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `) ? [line.slice(name.length).trim()] : []));
}
