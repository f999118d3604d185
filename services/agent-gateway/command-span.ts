import type { Span, SpanOptions, Tracing } from '#shared/telemetry/tracing.ts';

interface PublishedCommand {
  type: string;
  commandId: string;
  sessionId: string;
}

type SpanParent = Pick<SpanOptions, 'parent' | 'traceId' | 'links'>;

/** Of a name that stands in a span's name. Trace stores show some hundred characters of one; the attribute has all. */
const MAX_NAME_CHARACTERS = 128;

/** The putting of a command on the bus. What its owner does about it stands below, and begins when this has ended. @param traceName of the trace whose root it is */
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
