import { MACRO_REFERENCE, type Macro } from '../contracts/documents/macro.ts';
import type { Routine } from '../contracts/documents/routine.ts';
import type { ManifestOutline } from './manifest-outline.ts';
import type { NamedDocuments, Report } from './named-documents.ts';

/** Of texts that stand in prompts of each turn. */
const LIMITS = {
  /** Of a routine, and of a transition. */
  conditionChars: 2_000,
  /** Of a step, with its macros expanded. */
  instructionChars: 32_000,
  /** Of all steps of a routine: one question shows them all. */
  routineChars: 200_000,
  greetingChars: 32_000,
} as const;

/** Of a customer's value in an instruction (rule 94). */
const VALUE_CHARS = 500;

/**
 * Checks the lengths of routines' texts and of the greeting, with macros expanded. Macros may name each other: what a macro brings in is not expanded
 * again. Lengths are added up and no text is made, since a few macros can bring in more than fits in memory.
 */
export function checkTextLimits({ context }: ManifestOutline, documents: NamedDocuments, manifestFile: string, report: Report): void {
  const lengths = new Map(documents.macros.map(({ document }) => [document.id, lengthOf(document, documents)]));
  const greeting = expandedLength(context.greeting ?? '', lengths);
  if (greeting > LIMITS.greetingChars)
    report(
      manifestFile,
      ['agent_config', 'context', 'greeting'],
      `must not be longer than ${LIMITS.greetingChars} characters with its macros: it has ${greeting}`,
    );
  for (const { file, document } of documents.routines)
    if (document.kind === 'conversational') checkRoutine(document, lengths, (path, message) => report(file, path, message));
}

type ReportPath = (path: readonly PropertyKey[], message: string) => void;

function checkRoutine({ conditions, steps, transitions }: Routine, lengths: ReadonlyMap<string, number>, report: ReportPath): void {
  const expectShort = (text: string | null, path: readonly PropertyKey[]) => {
    if ((text ?? '').length > LIMITS.conditionChars) report(path, `must not be longer than ${LIMITS.conditionChars} characters`);
  };
  for (const [index, condition] of conditions.entries()) expectShort(condition, ['conditions', index]);
  for (const [index, { when }] of transitions.entries()) expectShort(when, ['transitions', index, 'when']);
  let sum = 0;
  for (const [index, step] of steps.entries()) {
    const [name, text] = step.kind === 'tool' ? (['tool_instruction', step.tool_instruction ?? ''] as const) : (['chat_state', chatTextOf(step)] as const);
    const length = step.kind === 'tool' ? text.length : expandedLength(text, lengths);
    sum += length;
    if (length > LIMITS.instructionChars)
      report(['steps', index, name], `must not be longer than ${LIMITS.instructionChars} characters with its macros: it has ${length}`);
  }
  if (sum > LIMITS.routineChars) report(['steps'], `must not have more than ${LIMITS.routineChars} characters together, with their macros: they have ${sum}`);
}

function chatTextOf(step: Routine['steps'][number]): string {
  return step.kind === 'chat' ? step.chat_state : '';
}

/** The longest that a macro can bring in. */
function lengthOf({ value, variable }: Macro, { variable_sets: sets }: NamedDocuments): number {
  if (variable === null) return value?.length ?? 0;
  const { set, name, fallback } = variable;
  const given = sets.find(({ document }) => document.id === set)?.document.variables.find((one) => one.name === name)?.default ?? null;
  const text = typeof given === 'string' ? given : given === null ? '' : JSON.stringify(given);
  return Math.max(VALUE_CHARS, fallback.length, text.length);
}

/** Of a text once its macros are expanded; unknown ones stay, and are reported elsewhere. */
function expandedLength(text: string, lengths: ReadonlyMap<string, number>): number {
  let length = text.length;
  for (const [written, id] of text.matchAll(MACRO_REFERENCE)) length += (id === undefined ? '${'.length : (lengths.get(id) ?? written.length)) - written.length;
  return length;
}
