import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './run-program.ts';

/** A fenced block of a page with the nearest heading above it; `''`: the title. */
export interface DocumentedBlock {
  page: string;
  heading: string;
  language: string;
  text: string;
}

/** Sections whose shell blocks a test pastes into a shell, beside a running `npm start`, and what they print. */
export const pastedSections = [
  { page: 'docs/quick-start.md', heading: '2. The router', shows: ["I am Switchyard's scripted model", '"object":"chat.completion"', 'scripted/assistant'] },
  { page: 'docs/quick-start.md', heading: '3. The agent', shows: ['2 years', '"kind":"assistant_message"', '"trace_id"'] },
  { page: 'docs/quick-start.md', heading: '6. What happened', shows: ['"traces":[{"trace_id"'] },
  { page: 'docs/operations.md', heading: 'Traces without a collector', shows: ['"traces":[{"trace_id"'] },
  { page: 'docs/responses.md', heading: 'Responses', shows: ['response.completed', 'data: [DONE]'] },
  { page: 'docs/incidents.md', heading: 'Requests are refused', shows: ['"limit_remaining"'] },
  { page: 'docs/incidents.md', heading: 'A turn hangs', shows: ['"items":[', '"traces":['] },
];

/** Those of README, docs/ without decisions and generated references, and the READMEs of folders that users open. */
export function documentedPages(): string[] {
  const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md') && name !== 'cli.md');
  return ['README.md', ...pages.map((name) => `docs/${name}`), 'examples/README.md', 'client/README.md', 'deploy/README.md'];
}

export function documentedBlocks(page: string): DocumentedBlock[] {
  const blocks: DocumentedBlock[] = [];
  let heading = '';
  let open: DocumentedBlock | null = null;
  for (const line of readFileSync(join(root, page), 'utf8').split('\n')) {
    const [, language] = /^```(.*)$/.exec(line) ?? [];
    if (open !== null && language !== undefined) {
      blocks.push(open);
      open = null;
    } else if (open !== null) open.text += `${line}\n`;
    else if (language !== undefined) open = { page, heading, language, text: '' };
    else heading = /^#{1,4} (.*)$/.exec(line)?.[1] ?? heading;
  }
  return blocks;
}

export function shellBlocks(page: string, heading: string): string[] {
  const found = documentedBlocks(page).filter((block) => block.heading === heading && block.language === 'sh');
  if (found.length === 0) throw new Error(`${page} has no commands under "${heading}"`);
  return found.map(({ text }) => text);
}
