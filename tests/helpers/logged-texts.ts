import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './run-program.ts';

const ROOMS = ['actors', 'bus', 'services', 'shared'];

/** The sources of the programs, in which each line of a log stands: all texts together, without those of tests. */
export function programTexts(): string {
  const files = ROOMS.flatMap((room) => readdirSync(join(root, room), { recursive: true, encoding: 'utf8' }).map((path) => `${room}/${path}`));
  const programs = files.filter((file) => file.endsWith('.ts') && !/\.test\.ts$|\/test-support\/|\/conformance/.test(file));
  return programs.map((file) => readFileSync(join(root, file), 'utf8')).join('\n');
}

/** Whether a line as a page has it is one of the programs; `…` stands for what follows, or for a value. */
export function isLogged(line: string, programs: string): boolean {
  const parts = line
    .split('…')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  return parts.length > 0 && parts.every((part) => programs.includes(part));
}
