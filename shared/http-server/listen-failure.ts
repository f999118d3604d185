import { SwitchyardError } from '../errors/switchyard-error.ts';

interface Listening {
  host: string;
  port: number;
  /** Names of the settings of both, for the remedy; absent: not named. */
  settings?: { host?: string; port?: string };
}

/** Why a server could not listen, with what to do: `service.port_taken` with the port in its details, `config.invalid`; any other error as it is. */
export function listenFailure({ host, port, settings = {} }: Listening, cause: unknown): unknown {
  switch (cause instanceof Error && 'code' in cause ? cause.code : null) {
    case 'EADDRINUSE': {
      const remedy = settings.port === undefined ? '' : `. Set ${settings.port} to a free port, or 0 for any`;
      return new SwitchyardError('service.port_taken', `Port ${port} of ${host} is taken by another program${remedy}`, { cause, details: { port } });
    }
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return refused(`${host} is not an address of this machine`, settings.host, '127.0.0.1, or 0.0.0.0 for all its addresses');
    case 'EACCES':
      return refused(`port ${port} of ${host} may not be opened by this user`, settings.port, 'a port above 1023');
    default:
      return cause;
  }
}

/** Without the cause, whose message says the same in the system's words. */
function refused(problem: string, setting: string | undefined, remedy: string): SwitchyardError {
  return new SwitchyardError('config.invalid', setting === undefined ? problem : `${problem}. Set ${setting} to ${remedy}`);
}
