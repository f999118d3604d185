import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './run-program.ts';

/** A trouble of docs/incidents.md, with the codes in backticks of its three paragraphs and its commands. */
export interface Incident {
  heading: string;
  /** PromQL. */
  queries: string[];
  /** Lines of logs and names of their fields. */
  logged: string[];
  /** The paragraph of the command, and the text below it. */
  rest: string;
  /** Lines of its shell blocks. */
  commands: string[];
}

/** Codes in backticks of a text. */
export function codesIn(markdown: string): string[] {
  return [...markdown.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
}

/** Each section of the page. */
export function documentedIncidents(): Incident[] {
  const [, ...sections] = readFileSync(join(root, 'docs/incidents.md'), 'utf8').split('\n## ');
  return sections.map((section) => {
    const paragraph = (name: string) => new RegExp(`^\\*\\*${name}\\.\\*\\* (.*)$`, 'm').exec(section)?.[1] ?? '';
    const [, rest = ''] = section.split('**Command.**');
    const blocks = [...rest.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
    return {
      heading: section.slice(0, section.indexOf('\n')),
      queries: codesIn(paragraph('Query')),
      logged: codesIn(paragraph('Log line')),
      rest: rest.replaceAll(/^```[\s\S]*?^```$/gm, ''),
      commands: blocks.flatMap((block) => block.split('\n').filter((line) => line !== '' && !line.startsWith('#'))),
    };
  });
}
