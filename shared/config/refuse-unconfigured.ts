import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { isEnabled } from '../contracts/router/plugins.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { BUILT_IN_PARSERS } from '../prompts/asked-parsing.ts';

/** Which plugins have an engine: settings of the configuration, or the engines themselves. */
export interface ConfiguredEngines {
  moderation?: object | null | undefined;
  web?: { readonly name: string } | null | undefined;
  /** Of files. */
  ocr?: { readonly name: string } | null | undefined;
}

/** @throws `request.invalid` naming the first plugin that is asked for and whose engine the configuration does not have: its caller relies on it */
export function refuseUnconfigured({ plugins = [] }: Pick<ChatRequest, 'plugins'>, configured: ConfiguredEngines): void {
  for (const [at, plugin] of plugins.entries()) {
    if (!isEnabled(plugin)) continue;
    if (plugin.id === 'moderation' && !configured.moderation) {
      throw refusal(`plugins[${at}]`, 'asks for moderation, for which this router has no engine; send the request without it');
    }
    if (plugin.id === 'file-parser') refuseParser(at, plugin as ParserPlugin, configured);
    // Without a name, or with "native", the endpoints of the models decide, which the worker knows.
    if (plugin.id !== 'web' || !('engine' in plugin) || plugin.engine === undefined || plugin.engine === 'native') continue;
    if (plugin.engine !== configured.web?.name) throw refusal(`plugins[${at}].engine`, 'is a search engine that this router does not have');
  }
}

interface ParserPlugin {
  pdf?: { engine?: string };
}

function refuseParser(at: number, { pdf }: ParserPlugin, { ocr }: ConfiguredEngines): void {
  const { engine = 'native' } = pdf ?? {};
  if (BUILT_IN_PARSERS.has(engine) || engine === ocr?.name) return;
  throw refusal(`plugins[${at}].pdf.engine`, 'is an OCR engine that this router does not have');
}

function refusal(param: string, problem: string): SwitchyardError {
  return new SwitchyardError('request.invalid', `${param} ${problem}`, { details: { param } });
}
