/** The series of one name in what `/metrics` answers, each as it is shown behind the name: for tests. */
export function seriesOf(text: string, name: string): string[] {
  return text.split('\n').flatMap((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `) ? [line.slice(name.length).trim()] : []));
}
