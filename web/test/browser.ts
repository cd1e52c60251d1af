// browser.ts - as much of a browser as the stores look at when they are loaded
function storage() {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
    removeItem: (key: string) => kept.delete(key),
  };
}

Object.assign(globalThis, {
  window: globalThis,
  sessionStorage: storage(),
  localStorage: storage(),
  location: { hash: "", protocol: "http:", host: "localhost" },
  document: {
    hidden: false,
    documentElement: { dataset: {} },
    querySelectorAll: () => [],
    querySelector: () => null,
  },
  addEventListener: () => undefined,
  // Nothing may keep a test from ending.
  setInterval: () => 0,
});
