import type { z } from 'zod';
import { escapeUnprintable, printedName } from '../contracts/printed-name.ts';
import { issueSentence } from '../errors/issue-sentence.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';

/** More are not read before the first are mended; the rest is counted. */
const MAX_LISTED_PROBLEMS = 50;

/** One error. It never quotes the value, which may be a misplaced secret. */
export interface Problem {
  path: readonly PropertyKey[];
  /** Predicate of a sentence with the path as subject: "must be a string". */
  expected: string;
}

export type Checked<Output> = { value: Output; problems: [] } | { value: null; problems: Problem[] };

export function check<Output>(schema: z.ZodType<Output>, value: unknown): Checked<Output> {
  const parsed = schema.safeParse(value, { error: issueSentence });
  return parsed.success ? { value: parsed.data, problems: [] } : { value: null, problems: parsed.error.issues.flatMap(problemsOf) };
}

/** `a.b[0].c: must be …`; no path for an error of the whole value. */
export function sentenceOf({ path, expected }: Problem): string {
  return path.length === 0 ? expected : `${formatPath(path)}: ${expected}`;
}

/** Names other than plain words are quoted: they come from the file, and may hold anything. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, segment) => {
    if (typeof segment === 'number') return `${text}[${segment}]`;
    const name = printedName(String(segment));
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

/** All lines of an error. Beside it: its details are logged and stored, and these have no bound. */
const allLines = new WeakMap<SwitchyardError, readonly string[]>();

/** Every line of a `configInvalid`, also those that its message only counts; of another error its message. */
export function problemLines(error: SwitchyardError): readonly string[] {
  return allLines.get(error) ?? [error.message];
}

/** @param advice a last line of the message, which is no error of its own */
export function configInvalid(subject: string, lines: readonly string[], advice?: string): SwitchyardError {
  // Lines begin with file names, which are not escaped yet.
  const distinct = [...new Set(lines)].map(escapeUnprintable);
  const listed = distinct.slice(0, MAX_LISTED_PROBLEMS);
  if (listed.length < distinct.length) listed.push(`… and ${distinct.length - listed.length} more`);
  const count = distinct.length === 1 ? '1 error' : `${distinct.length} errors`;
  const error = new SwitchyardError(
    'config.invalid',
    [`${subject} has ${count}:`, ...listed.map((line) => `  ${line}`), ...(advice === undefined ? [] : [advice])].join('\n'),
  );
  allLines.set(error, distinct);
  return error;
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => ({ path: [...issue.path, key], expected: 'is not a known field' }));
  return [{ path: issue.path, expected: issue.message }];
}
