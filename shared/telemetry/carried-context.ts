import { z } from 'zod';
import { spanReferenceIn } from './trace-context.ts';

/** Per header. The W3C asks to pass on at least 512 characters of `tracestate` and 8,192 bytes of `baggage`; a longer one is left out as a whole. */
const MAX_CHARS = { tracestate: 512, baggage: 8_192 } as const;
/** What a header may hold. */
const PRINTABLE = /^[\t\x20-\x7e]+$/;

/** What a caller sends beside `traceparent` for the services that are called in turn. It is passed on unread. */
export const carriedContext = z.object({ tracestate: z.string().optional(), baggage: z.string().optional() });
export type CarriedContext = z.infer<typeof carriedContext>;

/** Undefined: there is nothing to pass on. @param passesBaggage a baggage is whatever the caller puts into it, so it leaves only where the operator wants it to */
export function carriedIn(headers: Readonly<Record<string, string | string[] | undefined>>, passesBaggage: boolean): CarriedContext | undefined {
  // It belongs to a `traceparent`.
  const tracestate = spanReferenceIn(headers['traceparent']) === null ? undefined : textIn(headers['tracestate'], MAX_CHARS.tracestate);
  const baggage = passesBaggage ? textIn(headers['baggage'], MAX_CHARS.baggage) : undefined;
  if (tracestate === undefined && baggage === undefined) return undefined;
  return { ...(tracestate !== undefined && { tracestate }), ...(baggage !== undefined && { baggage }) };
}

function textIn(header: string | string[] | undefined, most: number): string | undefined {
  return typeof header === 'string' && header.length <= most && PRINTABLE.test(header) ? header : undefined;
}
