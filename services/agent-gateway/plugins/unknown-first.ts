import type { FastifyRequest } from 'fastify';
import type { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** What a parameter of an address names. */
export interface Named {
  /** Null: unknown right now. @param params of the request, for what is known within another */
  isKnown(id: string, params?: unknown): Promise<boolean | null>;
  notFound(): SwitchyardError;
}

/**
 * An address that names something unknown takes precedence over an invalid request.
 * @param named by parameter, in the order of the addresses
 */
export function unknownFirst(named: Readonly<Record<string, Named>>) {
  const entries = Object.entries(named);
  return (error: SwitchyardError, request: FastifyRequest): Promise<SwitchyardError | null> | null => {
    if (error.code !== 'request.invalid' && error.code !== 'request.unsupported_media') return null;
    const given = entries.flatMap(([parameter, { isKnown, notFound }]) => {
      const id = parameterOf(request, parameter);
      return id === null ? [] : [{ id, isKnown, notFound }];
    });
    return given.length === 0 ? null : firstUnknown(given, request.params);
  };
}

async function firstUnknown(given: readonly (Named & { id: string })[], params: unknown): Promise<SwitchyardError | null> {
  for (const { id, isKnown, notFound } of given) if ((await isKnown(id, params)) === false) return notFound();
  return null;
}

function parameterOf({ params }: FastifyRequest, name: string): string | null {
  if (typeof params !== 'object' || params === null) return null;
  const value: unknown = Reflect.get(params, name);
  return typeof value === 'string' ? value : null;
}
