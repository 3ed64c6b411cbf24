#!/usr/bin/env python3
"""Records tests/golden/templates.json: what Jinja makes of chats, by well-known models' templates.

usage: record_templates.py MODEL.gguf > templates.json      (needs jinja2 and gguf from PyPI)

The templates are those of the models' own tokenizer_config.json (MODEL's own from its file), some
without their branches for tools. Begin and end token are <s> and </s> throughout.
"""
import json
import sys

import gguf
import jinja2

ALTERNATE = ("{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
             "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}")
SPLIT_SYSTEM = ("{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content'] %}"
                "{%- set loop_messages = messages[1:] %}{%- else %}{%- set loop_messages = messages %}{%- endif %}")
LLAMA2 = ("{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
          "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
          "{% set system_message = false %}{% endif %}BEGIN{% for message in loop_messages %}" + ALTERNATE +
          "{% if loop.index0 == 0 and system_message != false %}"
          r"{% set content = '<<SYS>>\n' + system_message + '\n<</SYS>>\n\n' + message['content'] %}"
          "{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
          "{{ EACH'[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
          "{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}")

# name, family, template, whether it takes a system message
TEMPLATES = [
    ("OpenHermes", "chatml",
     r"{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
     r"{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}", True),
    ("Qwen2.5", "chatml",
     "{%- if tools %}\n    {{- '<|im_start|>system\\n' }}\n    {%- if messages[0]['role'] == 'system' %}\n"
     "        {{- messages[0]['content'] }}\n    {%- else %}\n"
     "        {{- 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' }}\n    {%- endif %}\n"
     "{%- else %}\n    {%- if messages[0]['role'] == 'system' %}\n"
     "        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}\n    {%- else %}\n"
     "        {{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}\n"
     "    {%- endif %}\n{%- endif %}\n{%- for message in messages %}\n"
     "    {%- if (message.role == \"user\") or (message.role == \"system\" and not loop.first) or (message.role == \"assistant\") %}\n"
     "        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n    {%- endif %}\n"
     "{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n", True),
    ("an apostrophe in the default", "chatml",
     r"{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou\'re \"kind\".\nAlways.<|im_end|>\n' }}{% endif %}"
     r"{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
     r"{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}", True),
    ("Llama 3", "llama3",
     "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + "
     "message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
     "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}"
     "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}", True),
    ("Gemma", "gemma",
     "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
     "{% for message in messages %}" + ALTERNATE + "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}"
     "{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + "
     "'<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}", False),
    ("Gemma 3", "gemma",
     "{{ bos_token }}\n{%- if messages[0]['role'] == 'system' -%}\n    {%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}\n"
     "    {%- set loop_messages = messages[1:] -%}\n{%- else -%}\n    {%- set first_user_prefix = \"\" -%}\n"
     "    {%- set loop_messages = messages -%}\n{%- endif -%}\n{%- for message in loop_messages -%}\n"
     "    {%- if (message['role'] == 'assistant') -%}\n        {%- set role = \"model\" -%}\n    {%- else -%}\n"
     "        {%- set role = message['role'] -%}\n    {%- endif -%}\n"
     "    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if loop.first else \"\") }}{{ message['content'] | trim }}"
     "{{ '<end_of_turn>\n' }}\n{%- endfor -%}\n{%- if add_generation_prompt -%}\n    {{'<start_of_turn>model\n'}}\n{%- endif -%}\n", True),
    ("Phi-3-mini", "phi3",
     r"{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}"
     r"{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}{% elif message['role'] == 'assistant' %}"
     r"{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}",
     True),
    ("Zephyr, TinyLlama", "zephyr",
     "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n"
     "{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' + message['content'] + eos_token }}\n"
     "{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n"
     "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}", True),
    ("Llama 2", "llama2", LLAMA2.replace("BEGIN", "").replace("EACH", "bos_token + "), True),
    ("Vigogne", "llama2-one-bos", LLAMA2.replace("BEGIN", "{{ bos_token }}").replace("EACH", ""), True),
    ("Mistral-7B-Instruct-v0.2, first", "mistral",
     "{{ bos_token }}{% for message in messages %}" + ALTERNATE + "{% if message['role'] == 'user' %}"
     "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}"
     "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}", False),
    ("Mistral-7B-Instruct-v0.2, now", "mistral-v1",
     SPLIT_SYSTEM + "{{- bos_token }}{%- for message in loop_messages %}{%- if message['role'] == 'user' %}"
     "{%- if loop.first and system_message is defined %}"
     r"{{- ' [INST] ' + system_message + '\n\n' + message['content'] + ' [/INST]' }}{%- else %}"
     "{{- ' [INST] ' + message['content'] + ' [/INST]' }}{%- endif %}{%- elif message['role'] == 'assistant' %}"
     "{{- ' ' + message['content'] + eos_token}}{%- endif %}{%- endfor %}", True),
    ("Mistral-7B-Instruct-v0.3", "mistral-v3",
     SPLIT_SYSTEM + "{{- bos_token }}{%- for message in loop_messages %}{%- if message['role'] == 'user' %}{%- if tools is not none and false %}"
     "{{- \"[AVAILABLE_TOOLS] [\" }}{%- endif %}{%- if loop.first and system_message is defined %}"
     r"""{{- "[INST] " + system_message + "\n\n" + message["content"] + "[/INST]" }}{%- else %}"""
     "{{- \"[INST] \" + message[\"content\"] + \"[/INST]\" }}{%- endif %}{%- elif message['role'] == 'assistant' %}"
     "{{- \" \" + message[\"content\"] + eos_token}}{%- endif %}{%- endfor %}", True),
    ("Mistral-Nemo", "mistral-v3-tekken",
     SPLIT_SYSTEM + "{{- bos_token }}{%- for message in loop_messages %}{%- if message['role'] == 'user' %}{%- if tools is not none and false %}"
     "{{- \"[AVAILABLE_TOOLS][\" }}{%- endif %}{{- \"[INST]\" }}{%- if loop.first and system_message is defined %}"
     r"""{{- system_message + "\n\n" }}{%- endif %}"""
     "{{- message[\"content\"] + \"[/INST]\" }}{%- elif message['role'] == 'assistant' %}"
     "{{- message[\"content\"] + eos_token}}{%- endif %}{%- endfor %}", True),
    ("Mistral-Large-2411", "mistral-v7",
     "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}{{ '[SYSTEM_PROMPT] ' + message['content'] + '[/SYSTEM_PROMPT]' }}"
     "{% elif message['role'] == 'user' %}{{ '[INST] ' + message['content'] + '[/INST]' }}{% elif message['role'] == 'assistant' %}"
     "{{ ' ' + message['content'] + eos_token }}{% endif %}{% endfor %}", True),
    ("Mistral-Small-2501", "mistral-v7-tekken",
     "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}{{ '[SYSTEM_PROMPT]' + message['content'] + '[/SYSTEM_PROMPT]' }}"
     "{% elif message['role'] == 'user' %}{{ '[INST]' + message['content'] + '[/INST]' }}{% elif message['role'] == 'assistant' %}"
     "{{ message['content'] + eos_token }}{% endif %}{% endfor %}", True),
]

U, A, S = "user", "assistant", "system"
CHATS = [
    ([(U, "Hello")], True),
    ([(S, "Be brief."), (U, "Hello"), (A, "Hi there"), (U, "Who are you?")], True),
    ([(U, "  Hello \n"), (A, "   I am an assistant   "), (U, "Another question")], True),
    ([(S, "Be brief.\nBe kind."), (U, "你好"), (A, "你好！")], False),
]


def refuse(message):
    raise ValueError(message)


def main():
    own = gguf.GGUFReader(sys.argv[1]).fields["tokenizer.chat_template"].contents()
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    out = []
    for name, family, text, system in [("SmolLM2", "chatml", own, True)] + TEMPLATES:
        template = environment.from_string(text)
        cases = []
        for chat, opening in CHATS:
            if chat[0][0] == S and not system:
                continue
            messages = [{"role": role, "content": content} for role, content in chat]
            expected = template.render(messages=messages, add_generation_prompt=opening, bos_token="<s>", eos_token="</s>")
            cases.append({"messages": messages, "open": opening, "expected": expected})
        out.append({"name": name, "family": family, "jinja": text, "cases": cases})
    json.dump(out, sys.stdout, indent=1, ensure_ascii=True)
    print()


main()
