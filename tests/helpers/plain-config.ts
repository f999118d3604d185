import { readFileSync } from 'node:fs';

/** The lines of a configuration by their section, without comments and indentation. A section begins at the margin: `backend router-gateway`. */
export function readSections(path: string): (title: string) => readonly string[] {
  const sections = new Map<string, string[]>();
  let lines: string[] = [];
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const text = line.trim();
    if (text === '' || text.startsWith('#')) continue;
    if (line.startsWith(' ')) lines.push(text);
    else {
      lines = [];
      sections.set(text, lines);
    }
  }
  return (title) => {
    const found = sections.get(title);
    if (found === undefined) throw new Error(`there is no section '${title}' in ${path}`);
    return found;
  };
}

/** The arguments of a directive in a section. @throws when it does not occur exactly once */
export function directiveIn(lines: readonly string[], directive: string): string {
  const values = lines.filter((line) => line.startsWith(`${directive} `)).map((line) => line.slice(directive.length + 1));
  const [value] = values;
  if (value === undefined || values.length > 1) throw new Error(`'${directive}' is there ${values.length} times`);
  return value;
}

interface Instruction {
  name: string;
  rest: string;
}

/** A Dockerfile's stages, each from its FROM on. */
export function readDockerfile(path: string): Instruction[][] {
  const stages: Instruction[][] = [];
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const [, name = '', rest = ''] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
    if (name === '') throw new Error(`this line is no instruction: ${line}`);
    if (name === 'FROM') stages.push([]);
    stages.at(-1)?.push({ name, rest });
  }
  return stages;
}
