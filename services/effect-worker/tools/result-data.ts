import { z } from 'zod';
import type { CommandOf } from '#bus/messages/session.ts';

/** What a model is shown of one result. */
const MAX_DATA_BYTES = 64 * 1024;
/** What is kept beside it for programs. */
const MAX_METADATA_BYTES = 16 * 1024;
const MAX_URI_CHARACTERS = 500;

const part = z.looseObject({
  type: z.string(),
  text: z.string().optional().catch(undefined),
  /** Base64 of images and audio. */
  data: z.string().optional().catch(undefined),
  mimeType: z.string().optional().catch(undefined),
  /** Of a link. */
  uri: z.string().optional().catch(undefined),
  name: z.string().optional().catch(undefined),
  resource: z
    .looseObject({ uri: z.string().optional().catch(undefined), mimeType: z.string().optional().catch(undefined) })
    .optional()
    .catch(undefined),
});

/** The answer to `tools/call`. */
export const callAnswer = z.looseObject({
  content: z.array(part).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().default(false),
  _meta: z.record(z.string(), z.unknown()).default({}),
});

export type ToolOutcome = CommandOf<'tool.completed'>['outcome'];

/** What a tool's answer means to whoever waits for it. Pictures and files are named, never carried. */
export function resultOf({ content, structuredContent, isError, _meta: meta }: z.output<typeof callAnswer>): ToolOutcome {
  const data = structuredContent ?? dataOf(content);
  const metadata = Buffer.byteLength(JSON.stringify(meta)) > MAX_METADATA_BYTES ? {} : meta;
  return { type: 'result', data: limited(data), metadata, isError };
}

/** A result that the model is to deal with, in words of ours. */
export function errorResult(message: string): ToolOutcome {
  return { type: 'result', data: { error: message }, metadata: {}, isError: true };
}

function dataOf(content: readonly z.output<typeof part>[]): unknown {
  const [only, ...others] = content;
  if (only?.type === 'text' && others.length === 0) return parsedIfJson(only.text ?? '');
  return content.map(textOf).join('\n');
}

/** Objects and lists only: a bare `007` or `12345678901234567890` is a text that would lose digits as a number. */
function parsedIfJson(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
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

/** Data as it is, or, when it is too much, the beginning of its text. */
function limited(data: unknown): unknown {
  const bytes = Buffer.from(typeof data === 'string' ? data : JSON.stringify(data), 'utf8');
  if (bytes.byteLength <= MAX_DATA_BYTES) return data;
  // What is cut through at the end is dropped: half a character is none.
  const beginning = new TextDecoder().decode(bytes.subarray(0, MAX_DATA_BYTES), { stream: true });
  return `${beginning}… (the first ${MAX_DATA_BYTES} of ${bytes.byteLength} bytes)`;
}
