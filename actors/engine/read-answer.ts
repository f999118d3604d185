import { z } from 'zod';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { readJsonObject } from './read-json-object.ts';

/** A hundred verdicts with a rationale of a paragraph each. */
const MAX_ANSWER_CHARS = 131_072;

type Malformed = { type: 'malformed'; reason: string };

/** @param name by which the scripted provider knows the question */
export function answerFormat(name: string, schema: z.ZodType): NonNullable<ChatRequest['response_format']> {
  const { $schema, ...plain } = z.toJSONSchema(schema, { override: ({ jsonSchema }) => dropBounds(jsonSchema) });
  return { type: 'json_schema', json_schema: { name, strict: true, schema: plain } };
}

/** Of whole numbers: zod adds those that a float can hold, and some models' strict formats know none. */
function dropBounds(schema: { minimum?: number; maximum?: number }): void {
  delete schema.minimum;
  delete schema.maximum;
}

/** Reads a step's reply by the schema of `answerFormat`; unknown fields are dropped. */
export function readAnswer<Answer>({ text }: { text: string }, schema: z.ZodType<Answer>): { type: 'read'; answer: Answer } | Malformed {
  if (text.trim() === '') return { type: 'malformed', reason: 'the answer is empty' };
  const json = readJsonObject(withoutCodeBlock(text), MAX_ANSWER_CHARS);
  if ('violation' in json) return { type: 'malformed', reason: `the answer ${json.violation.message}` };
  const parsed = schema.safeParse(json.value);
  if (parsed.success) return { type: 'read', answer: parsed.data };
  const [issue] = parsed.error.issues;
  return { type: 'malformed', reason: `${issue?.path.join('.') || 'the answer'}: ${issue?.message}` };
}

/** Some models put JSON into a code block in spite of the format. */
function withoutCodeBlock(text: string): string {
  const trimmed = text.trim();
  const start = trimmed.indexOf('\n');
  return trimmed.startsWith('```') && trimmed.endsWith('```') && start > 0 ? trimmed.slice(start, -3) : text;
}

/**
 * Assigns rows of an answer to the items that their ordinals name, in the order of the items.
 * @returns malformed: an ordinal is missing, repeated or names no item
 */
export function byOrdinal<Item, Row extends { id: number }>(items: readonly Item[], rows: readonly Row[]): { type: 'read'; pairs: [Item, Row][] } | Malformed {
  const found = new Map<number, Row>();
  for (const row of rows) {
    if (row.id < 1 || row.id > items.length) return { type: 'malformed', reason: `the answer names item ${row.id} of ${items.length}` };
    if (found.has(row.id)) return { type: 'malformed', reason: `the answer names item ${row.id} twice` };
    found.set(row.id, row);
  }
  const pairs: [Item, Row][] = [];
  for (const [index, item] of items.entries()) {
    const row = found.get(index + 1);
    if (row === undefined) return { type: 'malformed', reason: `the answer lacks item ${index + 1} of ${items.length}` };
    pairs.push([item, row]);
  }
  return { type: 'read', pairs };
}
