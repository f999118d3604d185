import { GEN_AI_SCHEMA_URL } from './gen-ai.ts';
import type { SpanKind, SpanScope } from './tracing.ts';

/** Names and ids are shorter; text that callers choose freely is cut. */
export const MAX_TEXT_CHARS = 256;
const MAX_CONTENT_CHARS = 32 * 1_024;
/** Attributes, links and events per span, attributes per event; OpenTelemetry's default. */
export const DEFAULT_COUNT_LIMIT = 128;
const CONTENT = /^gen_ai\.(?:input\.messages|output\.messages|tool\.(?:definitions|call\.(?:arguments|result)))$/;

/** As in the API of OpenTelemetry; OTLP counts from one. */
export const SPAN_KINDS: Record<SpanKind, number> = { internal: 0, server: 1, client: 2, producer: 3 };
export const STATUS = { unset: 0, error: 2 } as const;

/** One object each: exporters group spans by their identity. */
export const SCOPES: Record<SpanScope, { name: string; schemaUrl?: string }> = {
  switchyard: { name: 'switchyard' },
  'switchyard.messaging': { name: 'switchyard.messaging' },
  'switchyard.gen_ai': { name: 'switchyard.gen_ai', schemaUrl: GEN_AI_SCHEMA_URL },
};

/** Of an attribute's value, by its name. */
export function mostCharsOf(name: string): number {
  return CONTENT.test(name) ? MAX_CONTENT_CHARS : MAX_TEXT_CHARS;
}

export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  return most === 0 ? '' : `${text.slice(0, most - 1)}…`;
}
