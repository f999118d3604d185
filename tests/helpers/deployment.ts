import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { type ComposeService, filledEnv, interpolate, readCompose, readEnvExample } from './compose-file.ts';
import { type ServiceName, settingsReaders } from './service-settings.ts';

export const root = fileURLToPath(new URL('../..', import.meta.url));
export const compose = readCompose(join(root, 'docker-compose.yml'));
export const envExample = readEnvExample(join(root, 'deploy/.env.example'));
/** A `.env` after the instructions were followed. */
export const dotEnv = filledEnv(envExample);
export const packageFile = z
  .looseObject({ version: z.string(), engines: z.strictObject({ node: z.string() }) })
  .parse(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')));
/** The examples that the compose file mounts. */
export const exampleFiles = { routerConfigPath: join(root, 'examples/router.yaml'), manifestPath: join(root, 'examples/acme-support/manifest.yaml') };

/** The services of this project, unordered. */
export const ourServices = Object.keys(settingsReaders).filter((name): name is ServiceName => name in settingsReaders);

/** The services with a public port, and its default. */
export const doors = [
  { gateway: 'router-gateway', port: settingsReaders['router-gateway'](environmentOf('router-gateway')).port, frontend: 'router' },
  { gateway: 'agent-gateway', port: settingsReaders['agent-gateway'](environmentOf('agent-gateway')).port, frontend: 'agent' },
] as const;

/** The time for closing after the drain: RELEASE_MARGIN_MS of shared/lifecycle/run-process.ts. */
const CLOSING_SECONDS = 10;

/** The longest time of a service from the signal to its exit. */
export function stopSeconds(name: ServiceName): number {
  return settingsReaders[name](environmentOf(name)).drainTimeoutMs / 1_000 + CLOSING_SECONDS;
}

/** @throws for an unknown name */
export function serviceOf(name: string): ComposeService {
  const service = compose.services[name];
  if (service === undefined) throw new Error(`docker-compose.yml has no service ${name}`);
  return service;
}

/** The environment as the container receives it. */
export function environmentOf(name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(serviceOf(name).environment).map(([variable, text]) => [variable, interpolate(text, dotEnv)]));
}

/** Names of services, those of profiles included. */
export function servicesThat(condition: (service: ComposeService) => boolean): string[] {
  return Object.entries(compose.services)
    .filter(([, service]) => condition(service))
    .map(([name]) => name);
}

interface Mount {
  /** A path that begins with `./`, or the name of a volume. */
  source: string;
  target: string;
  isBind: boolean;
  isReadOnly: boolean;
}

export function mountsOf(name: string): Mount[] {
  return serviceOf(name).volumes.map((text) => {
    const [source = '', target = '', mode] = text.split(':');
    return { source, target, isBind: source.startsWith('./'), isReadOnly: mode === 'ro' };
  });
}
