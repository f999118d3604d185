import type { ToolWork } from '#bus/messages/tool.ts';
import { genAi } from '#shared/telemetry/gen-ai.ts';
import { maskUrl } from '#shared/telemetry/redact.ts';
import { contextBelow, spanIdOf } from '#shared/telemetry/trace-context.ts';
import { type Attributes, type ContentCapture, noTracing, type Span, type SpanKind, type SpanScope, type Tracing } from '#shared/telemetry/tracing.ts';
import type { Report } from './report-result.ts';

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
  parent: string | null;
}

/** Span of one attempt at an item. Its id is derived, so that a later attempt in any process can link to it. Null: not recorded. */
export function itemSpan(tracing: Tracing, trace: ItemTrace | null, { id, number, mayBeSecond, parent }: TracedItem): Span | null {
  if (tracing === noTracing || trace === null || parent === null) return null;
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

/** `execute_tool {tool}` or `tools/list`. The same span carries the attributes of an MCP client span. */
export function toolTrace(work: ToolWork, content: ContentCapture): ItemTrace {
  const ids = { [genAi.conversation]: work.sessionId, 'switchyard.run.id': work.actorId, 'switchyard.effect.id': work.effectId };
  if (work.type === 'list') {
    return {
      name: 'tools/list',
      kind: 'client',
      scope: 'switchyard.gen_ai',
      attributes: { ...ids, 'mcp.method.name': 'tools/list', 'switchyard.tool_servers': work.servers },
    };
  }
  return {
    name: `execute_tool ${work.toolId}`,
    kind: 'internal',
    scope: 'switchyard.gen_ai',
    attributes: {
      ...ids,
      [genAi.operation]: 'execute_tool',
      [genAi.toolName]: work.toolId,
      [genAi.toolType]: 'extension',
      [genAi.toolCallId]: work.effectId,
      [genAi.toolArguments]: shown(work.arguments, content),
      'mcp.method.name': 'tools/call',
    },
  };
}

export function endToolSpan(span: Span, report: Report | null, content: ContentCapture): void {
  const { attributes, errorType } = endOf(report, content);
  span.set(attributes);
  span.end(errorType);
}

function endOf(report: Report | null, content: ContentCapture): { attributes: Attributes; errorType: string | null } {
  if (report?.type === 'tools.listed') {
    const missing = Object.keys(report.unavailable);
    const isWhole = missing.length === 0;
    return { attributes: { 'switchyard.unavailable_tool_servers': isWhole ? undefined : missing }, errorType: isWhole ? null : 'unreachable' };
  }
  if (report?.type !== 'tool.completed') return { attributes: {}, errorType: 'no_result' };
  const { outcome } = report;
  if (outcome.type === 'failed') return { attributes: {}, errorType: outcome.reason };
  return { attributes: { [genAi.toolResult]: shown(outcome.data, content) }, errorType: outcome.isError ? 'tool_error' : null };
}

function shown(value: unknown, content: ContentCapture): string | undefined {
  if (content === 'off') return undefined;
  const text = JSON.stringify(value) ?? '';
  return content === 'full' ? maskUrl(text) : `[${text.length} characters]`;
}
