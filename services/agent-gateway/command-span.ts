import type { Span, SpanOptions, Tracing } from '#shared/telemetry/tracing.ts';

interface PublishedCommand {
  type: string;
  commandId: string;
  sessionId: string;
}

type SpanParent = Pick<SpanOptions, 'parent' | 'traceId' | 'links'>;

/** Trace stores show about a hundred characters of a span's name. */
const MAX_NAME_CHARACTERS = 128;

/**
 * The span of publishing a command. The owner's span is its child and begins after it has ended.
 * @param traceName of the trace of which this is the root
 */
export function commandSpan(tracing: Tracing, { type, commandId, sessionId }: PublishedCommand, parent: SpanParent, traceName = ''): Span {
  const name = traceName === '' ? 'publish cmd' : `publish cmd ${traceName.slice(0, MAX_NAME_CHARACTERS)}`;
  return tracing.begin(name, {
    kind: 'producer',
    scope: 'switchyard.messaging',
    attributes: {
      'messaging.system': 'nats',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'cmd',
      'messaging.message.id': commandId,
      'switchyard.command.type': type,
      'switchyard.session.id': sessionId,
      ...(traceName !== '' && { 'switchyard.trace_name': traceName }),
    },
    ...parent,
  });
}
