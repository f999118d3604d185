import { z } from 'zod';
import type { CommandOf } from '#bus/messages/session.ts';
import { inexactNumber } from '#shared/inexact-number.ts';
import { compileSchema, nestingViolation, problemOfSchema } from '#shared/json-schema.ts';
import { STRUCTURED_TEXT } from './structured-text.ts';

const MAX_DATA_BYTES = 64 * 1024;
/** Longest text parsed as JSON: indented, it may fit `MAX_DATA_BYTES` once parsed. Longer ones are truncated as text. */
const MAX_PARSED_CHARS = 4 * MAX_DATA_BYTES;
/** Of `_meta`, which programs read. */
const MAX_METADATA_BYTES = 16 * 1024;
const MAX_URI_CHARACTERS = 500;
/** Validated parts; the model gets 64 KiB of them at most. */
const MAX_PARTS = 1_000;
/** As for all values: validation and logging recurse. */
const MAX_DATA_DEPTH = 64;
const TOO_DEEP = `the answer of the tool can not be used: it must not be nested deeper than ${MAX_DATA_DEPTH} levels`;

const part = z.looseObject({
  type: z.string(),
  text: z.string().optional().catch(undefined),
  /** Base64 of images and audio. */
  data: z.string().optional().catch(undefined),
  mimeType: z.string().optional().catch(undefined),
  /** Of a resource link. */
  uri: z.string().optional().catch(undefined),
  name: z.string().optional().catch(undefined),
  resource: z
    .looseObject({ uri: z.string().optional().catch(undefined), mimeType: z.string().optional().catch(undefined) })
    .optional()
    .catch(undefined),
});

export const callResponse = z.looseObject({
  content: z.array(z.unknown()).default([]).transform(firstParts).pipe(z.array(part)),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().default(false),
  _meta: z.record(z.string(), z.unknown()).default({}),
});

function firstParts(parts: unknown[]): unknown[] {
  if (parts.length <= MAX_PARTS) return parts;
  return [...parts.slice(0, MAX_PARTS), { type: 'text', text: `… (the first ${MAX_PARTS} of ${parts.length} parts)` }];
}

export type ToolOutcome = CommandOf<'tool.completed'>['outcome'];

/** Images and files are described, not carried; data nested too deep is an error of the tool. */
export function resultOf({ content, structuredContent, isError, _meta: meta, ...others }: z.output<typeof callResponse>): ToolOutcome {
  const data = others[STRUCTURED_TEXT] ?? structuredContent ?? dataOf(content);
  const bytes = bytesOf(data);
  if (bytes === null) return errorResult(TOO_DEEP);
  if (bytes.byteLength > MAX_DATA_BYTES) return { type: 'result', data: beginningOf(bytes), metadata: metadataOf(meta), isError };
  // Truncated data is a string, so only short data needs the depth check.
  if (nestingViolation(data, MAX_DATA_DEPTH) !== null) return errorResult(TOO_DEEP);
  return { type: 'result', data, metadata: metadataOf(meta), isError };
}

/** A structured result that its tool's own schema refuses is an error of the tool. A schema that can't be compiled refuses nothing. */
export function checkedResult(outcome: ToolOutcome, structuredContent: unknown, outputSchema: Record<string, unknown> | null): ToolOutcome {
  if (outputSchema === null || structuredContent === undefined || outcome.type !== 'result' || outcome.isError) return outcome;
  if (problemOfSchema(outputSchema) !== null) return outcome;
  const violation = compileSchema(outputSchema)(structuredContent);
  return violation === null ? outcome : errorResult(`the answer of the tool does not fit its own schema: ${violation.path} ${violation.message}`.trim());
}

function metadataOf(meta: Record<string, unknown>): Record<string, unknown> {
  const bytes = bytesOf(meta);
  return bytes === null || bytes.byteLength > MAX_METADATA_BYTES || nestingViolation(meta, MAX_DATA_DEPTH) !== null ? {} : meta;
}

/** UTF-8 of a text, or of the JSON of anything else. Null when its nesting overflows the stack. */
function bytesOf(data: unknown): Buffer | null {
  try {
    return Buffer.from(typeof data === 'string' ? data : JSON.stringify(data), 'utf8');
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** An error result for the model, with our own text. */
export function errorResult(message: string): ToolOutcome {
  return { type: 'result', data: { error: message }, metadata: {}, isError: true };
}

function dataOf(content: readonly z.output<typeof part>[]): unknown {
  const [only, ...others] = content;
  if (only?.type === 'text' && others.length === 0) return parsedIfJson(only.text ?? '');
  return content.map(textOf).join('\n');
}

/** Objects and lists only: a bare `007` or `12345678901234567890` would lose digits as a number. So would one within: then all of it stays text. */
function parsedIfJson(text: string): unknown {
  if (text.length > MAX_PARSED_CHARS || !/^\s*[[{]/.test(text)) return text;
  try {
    const value: unknown = JSON.parse(text);
    return inexactNumber(text) === null ? value : text;
  } catch {
    return text;
  }
}

function textOf({ type, text, data, mimeType, uri, name, resource }: z.output<typeof part>): string {
  if (type === 'text') return text ?? '';
  const size = data === undefined ? null : `${Buffer.byteLength(data, 'base64')} bytes`;
  const facts = [mimeType ?? resource?.mimeType, name, uri ?? resource?.uri, size];
  const known = facts.filter((fact) => typeof fact === 'string').map((fact) => fact.slice(0, MAX_URI_CHARACTERS));
  return `[${[type, ...known].join(', ')}]`;
}

function beginningOf(bytes: Buffer): string {
  // `stream: true` drops a character that is cut at the end.
  const beginning = new TextDecoder().decode(bytes.subarray(0, MAX_DATA_BYTES), { stream: true });
  return `${beginning}… (the first ${MAX_DATA_BYTES} of ${bytes.byteLength} bytes)`;
}
