import { createLog, type Log } from '../../shared/telemetry/log.ts';

/** A log as in processes, which records every line. */
export function logLines(): { log: Log; lines: string[]; messages(): string[] } {
  const lines: string[] = [];
  const log = createLog({
    level: 'TRACE',
    service: 'test',
    output: {
      write: (line) => {
        lines.push(line);
        return true;
      },
    },
  });
  return { log, lines, messages: () => lines.map((line) => String(JSON.parse(line).msg)) };
}
