import { z } from 'zod';
import { publishedFile } from '#shared/http-server/published-file.ts';

/** The build copies the folder. */
const FILE = new URL('../../../schemas/agent-server/0.9.0/openapi.json', import.meta.url);

const named = z.object({ info: z.object({ title: z.string(), version: z.string() }) });

export interface Description {
  file: ReturnType<typeof publishedFile>;
  title: string;
  /** Of the API. */
  version: string;
}

let opened: Description | null = null;

/** The published description of this API. Read once in a process. */
export function openDescription(): Description {
  opened ??= read();
  return opened;
}

function read(): Description {
  const file = publishedFile(FILE);
  return { file, ...named.parse(JSON.parse(file.body.toString('utf8'))).info };
}
