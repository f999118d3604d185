import { contextBelow, spanIdOf } from '#shared/telemetry/trace-context.ts';
import { type Attributes, noTracing, type Span, type SpanKind, type SpanScope, type Tracing } from '#shared/telemetry/tracing.ts';

export interface ItemTrace {
  name: string;
  kind: SpanKind;
  scope: SpanScope;
  attributes: Attributes;
}

interface TracedItem {
  id: string;
  /** Number of the attempt, from 1. */
  number: number;
  /** Whether an earlier attempt may exist although the number is 1. */
  mayBeSecond: boolean;
  /** Null begins a trace. */
  parent: string | null;
}

/** Span of one attempt at an item. Its id is derived, so that a later attempt in any process can link to it. Null: not recorded. */
export function itemSpan(tracing: Tracing, trace: ItemTrace | null, { id, number, mayBeSecond, parent }: TracedItem): Span | null {
  if (tracing === noTracing || trace === null) return null;
  // How often an earlier item was delivered is unknown, so a derived id might repeat.
  const isUnsure = number === 1 && mayBeSecond;
  const former = number > 1 || isUnsure ? contextBelow(parent, `${id}#${Math.max(1, number - 1)}`) : null;
  return tracing.begin(trace.name, {
    kind: trace.kind,
    scope: trace.scope,
    parent,
    ...(isUnsure ? {} : { spanId: spanIdOf(`${id}#${number}`) }),
    links: former === null ? [] : [former],
    attributes: trace.attributes,
  });
}
