import type { ReadToEnd } from './client-stream.ts';
import type { Environment } from './environment.ts';

/** Of the time in which the lease was to be extended. A worker that waits for half of it needs twice the time for each tick of its event loop. */
const MUCH_WAITED = 0.5;
/** Of all streams. More are no accident of a busy machine, whatever their workers waited for. */
const MOST_EXCUSED = 0.02;

/** Streams that were refused otherwise than by a 503 with Retry-After, each with the response and what the processes have printed about it. */
export function refusalsBeyond503(environment: Environment, streams: readonly ReadToEnd[]): object[] {
  return withCauses(
    environment,
    streams.filter(({ failure, refusedWith }) => failure !== null && refusedWith !== null && !(refusedWith === 503 && 'retry-after' in failure.headers)),
  );
}

/** Streams that ended with an error behind their first content, but for those whose worker lost its lease for want of CPU (docs/adr/0147), which are printed. */
export function brokenStreams(environment: Environment, streams: readonly ReadToEnd[]): object[] {
  const broken = streams.filter(({ failure, refusedWith }) => failure !== null && refusedWith === null);
  const waited = broken.map(({ generationId }) => (generationId === null ? 0 : environment.waitedForCpu(generationId)));
  if (broken.length > 0)
    console.info(`streams that ended with an error: ${broken.length}; shares of the time before in which their workers waited for a CPU: ${waited}`);
  const unexcused = broken.filter((_, index) => (waited[index] ?? 0) < MUCH_WAITED);
  return withCauses(environment, broken.length - unexcused.length > MOST_EXCUSED * streams.length ? broken : unexcused);
}

function withCauses({ printedAbout }: Environment, streams: readonly ReadToEnd[]): object[] {
  return streams.flatMap(({ call, generationId, failure }) => {
    if (failure === null) return [];
    return [{ call, ...failure, printed: generationId === null ? [] : printedAbout(generationId, new Date(failure.at)) }];
  });
}
