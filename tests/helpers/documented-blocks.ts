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
  { page: 'docs/incidents.md', heading: 'A provider is down', shows: ['"endpoints":[', '"routing":{'] },
  { page: 'docs/incidents.md', heading: 'A budget is gone', shows: ['npm start', '"data":['] },
  { page: 'docs/incidents.md', heading: 'A disk is full', shows: ['GiB are free at', 'Filesystem'] },
  { page: 'docs/incidents.md', heading: 'A clock is off', shows: ['GiB are free at'] },
  { page: 'docs/keys.md', heading: 'Keys, credit and limits', shows: ['"object":"chat.completion"', '"total_cost"', '"limit_remaining"'] },
  {
    page: 'docs/moving.md',
    heading: '3. What your proxy has, and where it is here',
    shows: ['445cb74e7c6f1b59341dbb67ee4c824d7b96ad8611086612a2784006d70a6b00'],
  },
  { page: 'docs/scenarios.md', heading: 'Scenarios', shows: ['10 scenarios'] },
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
  return blocksIn(page, heading, 'sh');
}

/** @throws when there are none */
export function blocksIn(page: string, heading: string, language: string): string[] {
  const found = documentedBlocks(page).filter((block) => block.heading === heading && block.language === language);
  if (found.length === 0) throw new Error(`${page} has no commands under "${heading}"`);
  return found.map(({ text }) => text);
}
