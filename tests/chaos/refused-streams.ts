import type { ReadToEnd } from './client-stream.ts';
import type { Environment } from './environment.ts';

/** Streams that were refused otherwise than by a 503 with Retry-After, each with the response and what the processes have printed about it. */
export function refusalsBeyond503(environment: Environment, streams: readonly ReadToEnd[]): object[] {
  return withCauses(
    environment,
    streams.filter(({ failure, refusedWith }) => failure !== null && refusedWith !== null && !(refusedWith === 503 && 'retry-after' in failure.headers)),
  );
}

/** Streams that ended with an error behind their first content. */
export function brokenStreams(environment: Environment, streams: readonly ReadToEnd[]): object[] {
  return withCauses(
    environment,
    streams.filter(({ failure, refusedWith }) => failure !== null && refusedWith === null),
  );
}

function withCauses({ printedAbout }: Environment, streams: readonly ReadToEnd[]): object[] {
  return streams.flatMap(({ call, generationId, failure }) => {
    if (failure === null) return [];
    return [{ call, ...failure, printed: generationId === null ? [] : printedAbout(generationId, new Date(failure.at)) }];
  });
}
