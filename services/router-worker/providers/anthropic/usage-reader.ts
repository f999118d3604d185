import type { ProviderUsage } from '#shared/contracts/router/provider-part.ts';
import type { ApiUsage } from './event.ts';

/**
 * Counts are cumulative: those of the end replace those of the start, and are never added to them. `input_tokens` lacks the tokens that were read from and written
 * to the cache.
 */
export class UsageReader {
  #start: ApiUsage = null;

  begin(usage: ApiUsage): void {
    this.#start = usage;
  }

  /** What the start states, where the answer breaks off; null: it does not count the prompt, of which servers that count at the end state 0 tokens. */
  soFar(): ProviderUsage | null {
    if (typeof this.#start?.input_tokens !== 'number') return null;
    const counted = this.#read(null, this.#start.output_tokens ?? 0);
    return counted.promptTokens > 0 ? counted : null;
  }

  /** @returns null when the counts of the answer are missing */
  end(usage: ApiUsage): ProviderUsage | null {
    const completionTokens = usage?.output_tokens;
    return typeof completionTokens === 'number' ? this.#read(usage, completionTokens) : null;
  }

  #read(usage: ApiUsage, completionTokens: number): ProviderUsage {
    const last = (name: 'input_tokens' | 'cache_creation_input_tokens' | 'cache_read_input_tokens') => usage?.[name] ?? this.#start?.[name] ?? 0;
    const cachedTokens = last('cache_read_input_tokens');
    const cacheWriteTokens = last('cache_creation_input_tokens');
    const keptForAnHour = (usage?.cache_creation ?? this.#start?.cache_creation)?.ephemeral_1h_input_tokens ?? 0;
    const webSearches = (usage?.server_tool_use ?? this.#start?.server_tool_use)?.web_search_requests ?? 0;
    return {
      promptTokens: last('input_tokens') + cachedTokens + cacheWriteTokens,
      completionTokens,
      cachedTokens,
      cacheWriteTokens,
      ...(keptForAnHour > 0 && { cacheWrite1hTokens: Math.min(keptForAnHour, cacheWriteTokens) }),
      reasoningTokens: Math.min(usage?.output_tokens_details?.thinking_tokens ?? 0, completionTokens),
      ...(webSearches > 0 && { webSearches }),
    };
  }
}
