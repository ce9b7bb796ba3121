// The name of the browser's tab.
import { useEffect } from "preact/hooks";

export function useTitle(words: string): void {
  useEffect(() => {
    document.title = `${words} · ElasticDL`;
  }, [words]);
}
