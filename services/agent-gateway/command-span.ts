import type { Span, SpanOptions, Tracing } from '#shared/telemetry/tracing.ts';

interface PublishedCommand {
  type: string;
  commandId: string;
  sessionId: string;
}

type Place = Pick<SpanOptions, 'parent' | 'traceId' | 'links' | 'attributes'>;

/** The putting of a command on the bus. What its owner does about it stands below, and begins when this has ended. */
export function commandSpan(tracing: Tracing, { type, commandId, sessionId }: PublishedCommand, { attributes, ...place }: Place): Span {
  return tracing.begin('publish cmd', {
    kind: 'producer',
    scope: 'switchyard.messaging',
    attributes: {
      'messaging.system': 'nats',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'cmd',
      'messaging.message.id': commandId,
      'switchyard.command.type': type,
      'switchyard.session.id': sessionId,
      ...attributes,
    },
    ...place,
  });
}
