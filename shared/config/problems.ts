import type { z } from 'zod';
import { escapeUnprintable, printedName } from '../contracts/printed-name.ts';
import { issueSentence } from '../errors/issue-sentence.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';

/** More than are read before the first are mended; the rest is counted. */
const MAX_LISTED_PROBLEMS = 50;

/** One thing that is wrong. It never quotes the value found, which may be a secret in the wrong place. */
export interface Problem {
  path: readonly PropertyKey[];
  /** What is wanted there, as the rest of a sentence whose subject is the path: "must be a string". */
  expected: string;
}

/** A value that was read, or everything that is wrong with it. */
export type Checked<Output> = { value: Output; problems: [] } | { value: null; problems: Problem[] };

/** Reads a value by a schema, and says of everything that does not fit what is wanted instead. */
export function check<Output>(schema: z.ZodType<Output>, value: unknown): Checked<Output> {
  const parsed = schema.safeParse(value, { error: issueSentence });
  return parsed.success ? { value: parsed.data, problems: [] } : { value: null, problems: parsed.error.issues.flatMap(problemsOf) };
}

/** `a.b[0].c: must be …`; a problem of the whole has no path. */
export function sentenceOf({ path, expected }: Problem): string {
  return path.length === 0 ? expected : `${formatPath(path)}: ${expected}`;
}

/** Names that are no plain words are quoted: they come from the file, and may hold anything. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, segment) => {
    if (typeof segment === 'number') return `${text}[${segment}]`;
    const name = printedName(String(segment));
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

/** The error that lists everything at once, one line each, each line once. */
export function configInvalid(subject: string, lines: readonly string[]): SwitchyardError {
  // Names of files stand in the lines as they are.
  const distinct = [...new Set(lines)].map(escapeUnprintable);
  const listed = distinct.slice(0, MAX_LISTED_PROBLEMS);
  if (listed.length < distinct.length) listed.push(`… and ${distinct.length - listed.length} more`);
  const count = distinct.length === 1 ? '1 error' : `${distinct.length} errors`;
  return new SwitchyardError('config.invalid', [`${subject} has ${count}:`, ...listed.map((line) => `  ${line}`)].join('\n'));
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => ({ path: [...issue.path, key], expected: 'is not a known field' }));
  return [{ path: issue.path, expected: issue.message }];
}
