import { SwitchyardError } from '../errors/switchyard-error.ts';

const DEFAULT_PORTS: Record<string, string> = {
  'nats:': '4222',
  'tls:': '4222',
  'postgres:': '5432',
  'postgresql:': '5432',
  'redis:': '6379',
  'rediss:': '6379',
};

/** Does one step of a start. When the time for the start is over before it is done, the start fails with its name. */
export type Step = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>;

/**
 * Runs a start, which may take `limitMs`: what can't start has to say so and end, or whoever started it waits for ever. The drivers of
 * stores have bounds of their own, and better words; this is for all of them together, and for what comes after them.
 * @throws what the start throws; `service.not_ready`, naming the step, when the time is over
 */
export async function boot<Result>(limitMs: number, start: (step: Step) => Promise<Result>): Promise<Result> {
  let doing = 'starting';
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new SwitchyardError('service.not_ready', `${doing} has taken too long`)), Math.max(0, limitMs));
  });
  const work = start((name, action) => {
    doing = name;
    return action();
  });
  // When the time is over nobody waits for the rest any more; it ends with the process.
  work.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Host and port of a URL, or of several between commas: without user, password or parameters. */
export function addressOf(urls: string): string {
  return urls
    .split(',')
    .map((text) => {
      if (!URL.canParse(text.trim())) return 'an address that is not a URL';
      const { protocol, hostname, port } = new URL(text.trim());
      return `${hostname}:${port || (DEFAULT_PORTS[protocol] ?? '?')}`;
    })
    .join(', ');
}
